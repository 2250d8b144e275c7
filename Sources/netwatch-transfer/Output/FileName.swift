import Console
import FoundationEssentials
import HTTPSession
import Wire

/// The default name of the file for a URL's resource.
enum FileName {
    /// The name if the URL's path ends with a slash, as in wget.
    static let index = "index.html"
    /// The maximum length in bytes. NAME_MAX is 255, and the name of the partial file's sidecar is longer.
    static let longest = 200

    /// Returns the last segment of the URL's path, percent-decoded if that gives UTF-8 text, and made ``safe(_:)``.
    static func of(_ url: URL) -> String {
        let path = url.path(percentEncoded: true)
        guard let last = path.split(separator: "/", omittingEmptySubsequences: false).last, !last.isEmpty else { return index }
        return safe(PercentEncoding.decode(last) ?? String(last))
    }

    /// Returns a safe form of a name that a server or a link suggests: one path component, not hidden, and no option of a
    /// command. It is no partial file or sidecar of netwatch, and no device name of systems to which the file may be copied.
    static func safe(_ suggested: String) -> String {
        guard suggested != ".", suggested != "..", !suggested.isEmpty else { return index }
        var name = String(String.UnicodeScalarView(suggested.unicodeScalars.map { isHarmful($0) ? "_" : $0 }))
        // A shell expands a tilde to a home directory; spaces at either end are invisible.
        if let first = name.unicodeScalars.first, ".-~ ".unicodeScalars.contains(first) {
            name = "_" + String(name.unicodeScalars.dropFirst())
        }
        if name.unicodeScalars.last == " " { name = String(name.unicodeScalars.dropLast()) + "_" }
        name = name.replacing(partialFileSuffix, with: "_netwatch-part")
        let stem = name.prefix { $0 != "." }.lowercased()
        if devices.contains(stem) { name = "_" + name }
        return shortened(name)
    }

    // Created for each use, because a Regex is not Sendable.
    private static var partialFileSuffix: Regex<Substring> { /\.netwatch-part/.ignoresCase().matchingSemantics(.unicodeScalar) }
    private static let devices: Set<String> = {
        let numbered = (1...9).flatMap { ["com\($0)", "lpt\($0)"] }
        return Set(["con", "prn", "aux", "nul"] + numbered)
    }()

    private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "/" || scalar == "\\" || UnsafeCharacters.contain(scalar)
    }

    /// Shortens the name, but keeps its extension.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > longest else { return name }
        var end = Substring()
        if let dot = name.lastIndex(of: "."), name[dot...].utf8.count <= 20 { end = name[dot...] }
        // Scalars, not characters: one character with many accents may exceed the limit, and without a stem the extension would
        // be a hidden file.
        var stem = String.UnicodeScalarView()
        var room = longest - end.utf8.count
        for scalar in name.dropLast(end.count).unicodeScalars {
            room -= UTF8.width(scalar)
            guard room >= 0 else { break }
            stem.append(scalar)
        }
        return String(stem) + end
    }
}
