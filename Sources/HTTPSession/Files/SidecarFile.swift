internal import FoundationEssentials
internal import Glibc

/// Puts a ``Sidecar`` beside its part, and reads it there.
package enum SidecarFile {
    package static func path(of part: String) -> String { part + ".json" }

    /// `nil` where there is none, or one that says nothing.
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

    /// Also for a system that loses its power now: what the part has from now on is of another version.
    static func revoke(besides part: String) {
        if unlink(path(of: part)) == 0 { SmallFile.syncDirectory(of: part) }
    }
}
