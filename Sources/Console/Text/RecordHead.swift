package import Reachability

/// The version of the record format.
package enum RecordFormat {
    /// The value of the key `v`. Every change other than an addition increases it.
    package static let version = 1
}

extension JSONWriter {
    /// Writes the keys with which every record begins.
    package mutating func recordHead(seq: Int, at moment: Moment, type: String) {
        member("v", RecordFormat.version)
        member("seq", seq)
        member("ts", Timestamp.text(moment))
        member("mono_ns", moment.monotonicNanoseconds)
        member("type", type)
    }
}
