// This target has nothing to call: see setup.c.
