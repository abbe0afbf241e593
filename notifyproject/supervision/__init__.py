"""Runs programs under one parent, which may load their code once and fork them."""
