/// `HOST:PORT`: the connection is the whole probe. It ends before the server's program notices it. The programs take a target with a dialogue in
/// its settings for one of ``DialogueKind``.
struct TCPKind: ProbeKind {
    let schemes = [SchemeForm(name: "tcp", meaning: "accepts a TCP connection", isUnwritten: true, isConnectionAlone: true)]

    func settings(of scheme: Endpoint.Scheme) -> [any KindSettings.Type] { DialogueKind().settings }

    func replacement(of endpoint: Endpoint, _ settings: ProbeSettings) -> Endpoint? {
        settings.dialogue.isEmpty ? nil : endpoint.with(.dialogue)
    }
}

extension Endpoint.Scheme {
    /// A TCP connection, which ends before the server's program notices it.
    public static let tcp = Endpoint.Scheme("tcp")
}
