import Console
import FoundationEssentials
import Glibc
import Reachability

/// The token of a heartbeat, which only its owner should be able to read: whoever has it can report success in the job's place.
enum BeatToken {
    static let variable = "NETWATCH_BEAT_TOKEN"

    /// Reads the token of a file, or else of the environment; `nil` if neither is given.
    ///
    /// - Throws: ``Failure`` with code 66 for a file that cannot be read, 77 for one that every user can read, and 65 for one without a token. No message
    ///   quotes it.
    static func read(file: String?, _ environment: [String: String]) throws(Failure) -> String? {
        guard let file else {
            guard let value = environment[variable], !value.isEmpty else { return nil }
            return try token(value, place: variable)
        }
        let data: Data
        do { data = try TLSProbeSettings.contents(of: file) } catch { throw Failure("--token-file", error) }
        var found = stat()
        // A group may be that of the job alone: the files of systemd's credentials have an access control list, whose mask is that of the group.
        if stat(file, &found) == 0, found.st_mode & S_IFMT == S_IFREG, found.st_mode & 0o007 != 0 {
            throw Failure(ExitCode.notPermitted, "--token-file \(file): every user may read or write it; run chmod o-rwx")
        }
        return try token(String(decoding: data.prefix(16 << 10), as: UTF8.self), place: "--token-file \(file)")
    }

    /// Returns the first line without the whitespace around it.
    private static func token(_ text: String, place: String) throws(Failure) -> String {
        let line = text.split(omittingEmptySubsequences: false) { $0.isNewline }.first ?? ""
        let token = String(line.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
        // A field of HTTP has no others, and a space would end the token (RFC 6750 section 2.1).
        guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw Failure(ExitCode.badData, "\(place): the first line is no token")
        }
        return token
    }
}
