"""The web and the stream process as they are started, and clients that do them no good."""
