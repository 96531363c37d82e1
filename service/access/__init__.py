"""Who may do what, and how often. Everything between the network and a route.

A request passes these in order, and each may end it::

    proxies      whose forwarded headers are believed: the address, scheme and host of the request
    scopes       the one table: which route needs which scope
    gate         -> principals   who is this: a key of the settings, a stored key, a session, or anyone
                 -> limits       is it too many: by key, else by address; wrong keys by address and by peer
                 -> audit_log    what was done or refused
    slots        how many answers are worked on at once, and how many of them for one client

`keys` has the tables behind `principals`; `cookies` is how a browser signs in.
"""
