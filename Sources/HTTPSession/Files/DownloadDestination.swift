internal import CLinux
public import FoundationEssentials
internal import Glibc

/// The file of a download, and the rules for an existing file and for a partial file.
///
/// The bytes are written to a partial file in the same directory. When it is complete, it is synced and renamed. The destination never has an
/// incomplete file, not even after a power loss.
public struct DownloadDestination: Hashable, Sendable {
    /// The rule for a file that exists at the destination.
    @nonexhaustive public enum ExistingFile: Hashable, Sendable {
        /// The download fails with ``HTTPSessionError/Code/cannotWriteFile`` before a request is sent.
        case fail
        /// The new file replaces the old one, or a symbolic link, in one step (rename(2)). A directory, a device and the like are not replaced:
        /// the download fails as with ``fail``.
        case replace
    }

    /// The file that the download creates.
    public var file: URL
    /// The rule for a file that exists; ``ExistingFile/fail`` by default.
    public var existingFile: ExistingFile
    /// Whether missing directories above ``file`` are created; `false` by default.
    public var createsDirectories: Bool
    /// The rule for the partial file of a download that fails, or whose process is killed; ``PartialFilePolicy/remove`` by default.
    public var partialFile: PartialFilePolicy
    /// The digest that the complete file must have; `nil` for none.
    ///
    /// The digest is checked before the file gets its name; another digest is ``HTTPSessionError/Code/digestMismatch``. If the value is `nil`, the
    /// server's digest (`Repr-Digest`, RFC 9530) is checked if there is one and the body is not decoded.
    public var expectedDigest: ContentDigest?

    /// The rule for the partial file of a download that fails, or whose process is killed.
    @nonexhaustive public enum PartialFilePolicy: Hashable, Sendable {
        /// The partial file has a random name (`.NAME.RANDOM.part`) and is removed. If the process is killed, the file stays.
        case remove
        /// The partial file stays beside the destination as `NAME.netwatch-part`, with a sidecar `NAME.netwatch-part.json` that says which of
        /// its bytes are valid.
        ///
        /// A later download to the same destination continues the partial file if it has the same URL, or another URL with the same
        /// ``DownloadDestination/expectedDigest``. One task at a time uses the partial file; another task fails with
        /// ``HTTPSessionError/Code/cannotWriteFile``.
        case keep
        /// The partial file stays as with `keep`, but an existing one is not continued: it is emptied when the first byte arrives.
        case restart
    }

    /// Creates a destination. By default it replaces no file, and leaves no partial file.
    public init(
        _ file: URL, existingFile: ExistingFile = .fail, createsDirectories: Bool = false,
        partialFile: PartialFilePolicy = .remove, expectedDigest: ContentDigest? = nil
    ) {
        self.file = file
        self.existingFile = existingFile
        self.createsDirectories = createsDirectories
        self.partialFile = partialFile
        self.expectedDigest = expectedDigest
    }

    /// Whether the finished file stores the server's validator as an extended attribute.
    ///
    /// A later download of the same URL to the same file then requests another version only (If-None-Match, If-Modified-Since). If there is none,
    /// its response is the 304, and the file is not changed.
    package var keepsValidator = false

    /// The rule by which the response names the file; `nil` if the file is ``file``. With a rule, ``file`` is the path from which the partial file's
    /// path is derived until the name is known.
    package var naming: ResponseNaming?

    /// The suffix of the name of a partial file that is kept.
    package static let partialFileSuffix = ".netwatch-part"
}

/// A rule by which a response names the file of its download, in the directory of the destination.
package final class ResponseNaming: Hashable, Sendable {
    /// The file's name, one path component, for the name that the server suggests in `Content-Disposition`; `nil` if it suggests none.
    package let name: @Sendable (_ suggested: String?) -> String

    package init(_ name: @escaping @Sendable (_ suggested: String?) -> String) { self.name = name }

    package static func == (one: ResponseNaming, other: ResponseNaming) -> Bool { one === other }
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension DownloadDestination {
    /// Throws ``HTTPSessionError/Code/cannotWriteFile`` if the destination cannot take a file now.
    ///
    /// A symbolic link may be replaced like a file. A directory, a device, a FIFO or a socket is refused, because a rename would remove it.
    package func check() throws(HTTPSessionError) {
        guard file.isFileURL else { throw HTTPSessionError(.cannotWriteFile, "the URL of the destination is not a file URL") }
        // NAME_MAX. The temporary file has a shorter name, so that the error would not appear before the last rename.
        guard file.lastPathComponent.utf8.count <= 255 else { throw FileFailure.placing(file.path, ENAMETOOLONG) }
        var found = stat()
        guard lstat(file.path, &found) == 0 else { return }
        switch found.st_mode & S_IFMT {
        case S_IFREG, S_IFLNK: break
        case S_IFDIR: throw FileFailure.placing(file.path, EISDIR)
        default: throw HTTPSessionError(.cannotWriteFile, "cannot put the file at '\(file.path)': \(DownloadDestination.noFile)")
        }
        if existingFile == .fail { throw FileFailure.placing(file.path, EEXIST) }
    }

    /// The reason for a destination that exists and is not a file.
    package static let noFile = "it exists and is not a file"
}
