import Console
import FoundationEssentials
import HTTPSession

/// The name of the file that a URL's resource goes to, where nobody says another.
enum FileName {
    /// Where the address names none, as wget has it.
    static let index = "index.html"
    /// In bytes: a name has 255 (NAME_MAX), and the part's sidecar a longer one.
    static let longest = 200

    /// The last segment of the path, percent-decoded if that gives text, as ``safe(_:)`` has it.
    static func of(_ url: URL) -> String {
        let path = url.path(percentEncoded: true)
        guard let last = path.split(separator: "/", omittingEmptySubsequences: false).last, !last.isEmpty else { return index }
        return safe(PercentEscaping.unescape(String(last)) ?? String(last))
    }

    /// A name that a server or a link suggests, made harmless: one component of a path, visible, no option of a command, no partial file
    /// of ours or its sidecar, and no device of the systems that a file may be copied to.
    static func safe(_ suggested: String) -> String {
        guard suggested != ".", suggested != "..", !suggested.isEmpty else { return index }
        var name = String(String.UnicodeScalarView(suggested.unicodeScalars.map { isHarmful($0) ? "_" : $0 }))
        // A shell reads a tilde as a home directory; spaces at either end are not seen.
        if let first = name.unicodeScalars.first, ".-~ ".unicodeScalars.contains(first) {
            name = "_" + String(name.unicodeScalars.dropFirst())
        }
        if name.unicodeScalars.last == " " { name = String(name.unicodeScalars.dropLast()) + "_" }
        name = name.replacing(partMark, with: "_netwatch-part")
        let stem = name.prefix { $0 != "." }.lowercased()
        if devices.contains(stem) { name = "_" + name }
        return shortened(name)
    }

    // Made for each use: a Regex is not Sendable.
    private static var partMark: Regex<Substring> { /\.netwatch-part/.ignoresCase().matchingSemantics(.unicodeScalar) }
    private static let devices: Set<String> = {
        let numbered = (1...9).flatMap { ["com\($0)", "lpt\($0)"] }
        return Set(["con", "prn", "aux", "nul"] + numbered)
    }()

    private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "/" || scalar == "\\" || UnsafeCharacters.contain(scalar)
    }

    /// The end of the name says what it is: it is kept.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > longest else { return name }
        var end = Substring()
        if let dot = name.lastIndex(of: "."), name[dot...].utf8.count <= 20 { end = name[dot...] }
        // By scalars: one character with many accents may be longer than a name, and without a stem the end is a hidden file.
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
