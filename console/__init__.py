"""The console: pages for the people who run the service.

Pages read through the ORM and the queries of the packages; every change goes through their actions.
"""
