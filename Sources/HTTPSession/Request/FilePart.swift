/// A stretch of a file.
package struct FilePart: Hashable, Sendable {
    let path: String
    /// Of the whole file, in bytes, when it was looked at.
    let size: Int64
    /// `nil`: only its size has to be the same.
    let version: FileVersion?
    let range: Range<Int64>

    var count: Int64 { range.upperBound - range.lowerBound }
}

/// What tells whether a file is still the one that was looked at.
package struct FileVersion: Hashable, Sendable, Codable {
    let device: UInt64
    let inode: UInt64
    let size: Int64
    /// Nanoseconds since 1970.
    let modified: Int64
    /// Of the inode (st_ctim), which nobody can set back as they can the time of modification.
    var changed: Int64
}
