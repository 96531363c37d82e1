"""Facts that users state in sentences: versions, symptoms, remedies, comparisons, devices, quoted options."""
