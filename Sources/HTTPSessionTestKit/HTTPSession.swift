// Requests, responses and sessions are in the signatures of this library: its users need no import of their own.
@_exported public import HTTPSession
