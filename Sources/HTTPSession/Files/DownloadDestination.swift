public import FoundationEssentials

/// Where a download goes, and what happens to a file that is already there.
///
/// The bytes go to a hidden temporary file in the same directory, which is synced and then renamed: at the destination there is the
/// whole file or none of it, also after a power loss.
public struct DownloadDestination: Hashable, Sendable {
    /// What to do when the destination exists.
    @nonexhaustive public enum ExistingFile: Hashable, Sendable {
        /// The download fails (``HTTPSessionError/Code/cannotWriteFile``), before anything is asked of the server.
        case fail
        /// The new file takes the place of the old one, in one step; of a symbolic link's too. What is no file, such as a directory or a
        /// device, is left alone: the download fails as with ``fail``.
        case replace
    }

    /// The file to be.
    public var file: URL
    /// What to do when it exists.
    public var existingFile: ExistingFile
    /// Make the directories above it where they are missing.
    public var createsDirectories: Bool
    /// What becomes of a download that does not become whole.
    public var unfinished: Unfinished
    /// The digest that the file has to have. It is checked when all has come, before the file gets its name; another file is
    /// ``HTTPSessionError/Code/digestMismatch``. Without one, the server's own is checked where it sends one (`Repr-Digest`, RFC 9530),
    /// with the whole or with its rest, but for bodies that are decoded.
    public var expectedDigest: ContentDigest?

    /// What becomes of a download that does not become whole: because it failed, or its process was killed.
    @nonexhaustive public enum Unfinished: Hashable, Sendable {
        /// Nothing is left of it; of a process that was killed, the hidden file is.
        case removed
        /// Its bytes lie beside the destination as `NAME.netwatch-part`, and beside that, as `NAME.netwatch-part.json`, what tells
        /// which of them are valid. A later download to the same place goes on from there: of the same address, or of another one with
        /// the same ``DownloadDestination/expectedDigest``. One task at a time has the part; another is refused
        /// (``HTTPSessionError/Code/cannotWriteFile``).
        case kept
        /// As `kept`, but what lies there already is dropped when the first byte comes.
        case keptAnew
    }

    /// A destination that replaces nothing and leaves nothing unless told to.
    public init(
        _ file: URL, existingFile: ExistingFile = .fail, createsDirectories: Bool = false, unfinished: Unfinished = .removed,
        expectedDigest: ContentDigest? = nil
    ) {
        self.file = file
        self.existingFile = existingFile
        self.createsDirectories = createsDirectories
        self.unfinished = unfinished
        self.expectedDigest = expectedDigest
    }

    /// Whether the finished file keeps the server's validator as an extended attribute, and a later download of the same URL to the same file
    /// asks only for another version (If-None-Match, If-Modified-Since). If there is none, its response is the 304, and the file is untouched.
    package var keepsValidator = false

    /// The choice of the file's name by its response; ``file`` then says where the partial file lies until the name is known. `nil`: the file
    /// is ``file``.
    package var naming: ResponseNaming?

    /// How the name of a part that is kept ends.
    package static let partSuffix = ".netwatch-part"
}

/// A rule by which a response names the file of its download, in the directory of the destination.
package final class ResponseNaming: Hashable, Sendable {
    /// The file's name for the one that a server suggests by `Content-Disposition`; `nil`: it suggests none. The result is one path component.
    package let name: @Sendable (_ suggested: String?) -> String

    package init(_ name: @escaping @Sendable (_ suggested: String?) -> String) { self.name = name }

    package static func == (one: ResponseNaming, other: ResponseNaming) -> Bool { one === other }
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
