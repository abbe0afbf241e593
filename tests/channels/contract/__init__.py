"""What every provider keeps to, whichever it is: the same tests for all of them."""
