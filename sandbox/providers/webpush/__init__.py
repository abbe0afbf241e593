"""The push services of Chrome, Firefox, Safari, and Edge, and browsers that subscribe at them."""
