"""What users say in sentences: versions, symptoms, remedies, comparisons, devices, quoted options."""
