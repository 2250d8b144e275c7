import Console

/// The origin of a history: which machine, and which service on it. Several services of a machine have directories of their own.
struct HistorySource: Hashable, Sendable {
    /// The name of the machine.
    var instance: String
    /// The state directory.
    var state: String
    /// Whether a running service answers. Otherwise its files are read.
    var isService: Bool

    /// The origin for people, as the first line of a text: `service edge-07, state /var/lib/netwatch`.
    var line: String {
        TextStyle.printable("\(isService ? "service" : "files of the service on") \(instance), state \(state)")
    }

    /// Writes the members of a document.
    func write(to writer: inout JSONWriter) {
        writer.member("instance", instance)
        writer.member("state", state)
    }
}
