"""What all stand-ins of AWS share: accounts, signatures, and topics of SNS."""
