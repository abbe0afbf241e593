"""The contract that every provider keeps."""
