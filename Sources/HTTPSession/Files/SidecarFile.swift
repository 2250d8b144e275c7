internal import FoundationEssentials
internal import Glibc

/// The file of a ``Sidecar``, beside its partial file.
package enum SidecarFile {
    package static func path(of part: String) -> String { part + ".json" }

    /// Reads the sidecar of a partial file; `nil` if there is none or it is damaged.
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotReadFile`` for a sidecar that cannot be read, or of a newer format.
    static func read(besides part: String) throws(HTTPSessionError) -> Sidecar? {
        let path = path(of: part)
        guard let data = try SmallFile.read(path) else { return nil }
        do throws(Sidecar.ReadingError) { return try Sidecar(decoding: data) } catch {
            switch error {
            case .damaged: return nil
            case .newer(let version):
                throw HTTPSessionError(.cannotReadFile, "'\(path)' has format \(version), which is newer than this program")
            }
        }
    }

    static func write(_ sidecar: Sidecar, besides part: String) throws(HTTPSessionError) {
        let path = path(of: part)
        guard let data = try? sidecar.encoded() else { throw FileFailure.writing(path, EINVAL) }
        try SmallFile.replace(path, with: data)
    }

    static func remove(besides part: String) { unlink(path(of: part)) }

    /// Removes the sidecar and syncs its directory, because the partial file will have bytes of another version, also after a power loss.
    static func revoke(besides part: String) {
        if unlink(path(of: part)) == 0 { SmallFile.syncDirectory(of: part) }
    }
}
