"""What tests share: factories, fakes and clients."""
