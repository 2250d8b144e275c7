/// A recording, run again: the identical events, as fast as they are read.
package struct Replay {
    /// A line that is not part of a recording.
    package struct DamageError: Error, Hashable, Sendable {
        /// Counted from 1.
        package let line: Int
        package let why: String
    }

    package let identity: MonitorIdentity
    package let targets: [Endpoint]

    /// Reads the header of a recording; `readLine` gives the file's next line without its newline, `nil` at its end.
    package init(readLine: @escaping () throws -> String?) throws {
        identity = MonitorIdentity(bootID: "", namespaceName: nil, namespaceInode: 0)
        targets = []
    }

    /// Runs the rest; everything before a damaged line has been given to `sink` when it throws.
    package mutating func run(_ sink: (MonitorEvent) -> Void) throws {}
}
