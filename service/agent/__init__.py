"""A model beside the advisor: it writes the text, and in an investigation looks things up before, step by step.

The tools only read: cases, option catalogues, pasted lines, and the rules' findings for a changed configuration.
Verdict, causes and findings remain the advisor's.
"""
