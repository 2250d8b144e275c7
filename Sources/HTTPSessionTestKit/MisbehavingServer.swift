/// A server that does to its clients what they are told to expect.
public struct MisbehavingServer: Sendable {}
