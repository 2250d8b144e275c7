import Foundation

/// The name of the file that a URL's resource goes to, where nobody says another.
enum FileName {
    /// Where the address names none, as wget has it.
    static let index = "index.html"
    /// In bytes: a name has 255 (NAME_MAX), and the part's sidecar a longer one.
    static let longest = 200

    /// The last segment of the path, percent-decoded where that gives text. It has no slash and no control character, and does not begin
    /// with a dot: what is hidden would surprise, and `..` is no file.
    static func of(_ url: URL) -> String {
        let path = url.path(percentEncoded: true)
        guard let last = path.split(separator: "/", omittingEmptySubsequences: false).last, !last.isEmpty else { return index }
        let decoded = String(last).removingPercentEncoding ?? String(last)
        guard decoded != ".", decoded != "..", !decoded.isEmpty else { return index }
        var name = String(
            String.UnicodeScalarView(
                decoded.unicodeScalars.map { $0 == "/" || $0.value < 0x20 || (0x7f..<0xa0).contains($0.value) ? "_" : $0 }))
        if name.hasPrefix(".") { name = "_" + name.dropFirst() }
        return shortened(name)
    }

    /// The end of the name says what it is: it is kept.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > longest else { return name }
        var end = Substring()
        if let dot = name.lastIndex(of: "."), name[dot...].utf8.count <= 20 { end = name[dot...] }
        var stem = Substring()
        for character in name.dropLast(end.count) {
            guard stem.utf8.count + character.utf8.count + end.utf8.count <= longest else { break }
            stem.append(character)
        }
        return String(stem + end)
    }
}
