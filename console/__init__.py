"""The operations console: the pages of operators and support.

Pages read through the ORM and the packages' queries; every change goes through their actions.
"""
