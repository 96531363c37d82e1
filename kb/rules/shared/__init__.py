"""What several rules' modules share: reading logs and series, what options accept, what a message says of a card.

Held, like those modules themselves, by the examples on the rules' pages.
"""
