/// A range of a file's bytes.
package struct FilePart: Hashable, Sendable {
    let path: String
    /// The size of the file in bytes when it was checked.
    let size: Int64
    /// The version of the file; `nil` if only its size must be the same.
    let version: FileVersion?
    let range: Range<Int64>

    var count: Int64 { range.upperBound - range.lowerBound }
}

/// The identity of a file's content, to detect a change.
package struct FileVersion: Hashable, Sendable, Codable {
    let device: UInt64
    let inode: UInt64
    let size: Int64
    /// The time of modification in nanoseconds since 1970.
    let modified: Int64
    /// The time of the inode's change (st_ctim), which no program can set, unlike the time of modification.
    var changed: Int64
}
