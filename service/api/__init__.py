"""The HTTP API: thin routes over `service.advisor.Advisor`."""
