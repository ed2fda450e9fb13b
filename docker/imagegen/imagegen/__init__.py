"""The picture sidecar: draws pictures with diffusers and reports every step.

`settings.py` reads the environment, `pipeline.py` holds the model, `jobs.py` the queue, `api.py` the routes.
"""
