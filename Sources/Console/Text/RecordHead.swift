package import Reachability

/// What is common to all records of a stream.
package enum RecordFormat {
    /// The key `v`: raised by a change that is no addition.
    package static let version = 1
}

extension JSONWriter {
    /// The keys that every record begins with.
    package mutating func recordHead(seq: Int, at moment: Moment, type: String) {
        member("v", RecordFormat.version)
        member("seq", seq)
        member("ts", Timestamp.text(moment))
        member("mono_ns", moment.monotonicNanoseconds)
        member("type", type)
    }
}
