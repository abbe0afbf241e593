"""A simulation of people over weeks on virtual time: real store and pipeline, simulated sends."""
