public import Foundation

/// Where a download goes, and what happens to a file that is already there.
///
/// The bytes go to a hidden temporary file in the same directory, which is synced and then renamed: at the destination there is the
/// whole file or none of it, also after a power loss.
public struct DownloadDestination: Hashable, Sendable {
    /// What to do when the destination exists.
    public enum ExistingFile: Hashable, Sendable {
        /// The download fails (``HTTPSessionError/Code/cannotMoveFile``), before anything is asked of the server.
        case fail
        /// The new file takes the place of the old one, in one step.
        case replace
    }

    /// The file to be.
    public var file: URL
    /// What to do when it exists.
    public var existingFile: ExistingFile
    /// Make the directories above it where they are missing.
    public var createsDirectories: Bool

    /// A destination that replaces nothing unless told to.
    public init(_ file: URL, existingFile: ExistingFile = .fail, createsDirectories: Bool = false) {
        self.file = file
        self.existingFile = existingFile
        self.createsDirectories = createsDirectories
    }
}
