import Foundation
import Glibc

/// A text file of the repository.
struct SourceFile {
    /// The path relative to the root of the repository.
    let path: String
    let lines: [Substring]

    init(_ path: String, _ text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    }

    var isSwift: Bool { path.hasSuffix(".swift") }
    var isC: Bool { [".c", ".cpp", ".h"].contains { path.hasSuffix($0) } }

    func isIn(_ folders: [String]) -> Bool {
        folders.contains { path.hasPrefix($0 + "/") }
    }

    /// A finding for each line for which `complaint` returns a text.
    func findings(_ complaint: (Substring) -> String?) -> [Finding] {
        zip(1..., lines).compactMap { number, line in
            complaint(line).map { Finding(path: path, line: number, what: $0) }
        }
    }

    /// The modules that the file imports, with the line of each.
    var imports: [(line: Int, module: String)] {
        zip(1..., lines).compactMap { number, line in
            let words = line.prefix { $0 != "/" }.split(whereSeparator: \.isWhitespace)
            guard let keyword = words.firstIndex(of: "import"), words.count > keyword + 1 else { return nil }
            let modifiers: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]
            guard words[..<keyword].allSatisfy({ $0.hasPrefix("@") || modifiers.contains($0) }) else { return nil }
            let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
            let name = kinds.contains(words[keyword + 1]) ? words.dropFirst(keyword + 2).first : words[keyword + 1]
            return name.map { (number, String($0.prefix { $0 != "." && $0 != ";" })) }
        }
    }
}

extension Substring {
    /// Whether the line has a text: faster than `contains(_:)`, which compares characters and not bytes.
    func has(_ text: StaticString) -> Bool {
        utf8.withContiguousStorageIfAvailable { line in
            guard var rest = line.baseAddress.map({ UnsafeRawPointer($0) }) else { return false }
            let end = rest + line.count
            while let place = memchr(rest, Int32(text.utf8Start.pointee), end - rest) {
                guard end - UnsafeRawPointer(place) >= text.utf8CodeUnitCount else { return false }
                if memcmp(place, text.utf8Start, text.utf8CodeUnitCount) == 0 { return true }
                rest = UnsafeRawPointer(place) + 1
            }
            return false
        } ?? contains("\(text)")
    }
}

/// A broken rule, in the format of a compiler's message.
struct Finding: CustomStringConvertible, Equatable {
    let path: String
    let line: Int
    let what: String

    var description: String { "\(path):\(line): \(what)" }
}

/// The text files of the repository: those of its folders, and those at its root.
func repositoryFiles() throws -> [SourceFile] {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let folders = ["Sources", "Tests", "Benchmarks", "Examples", "Fuzz", "docs", "scripts", ".ci"]
    let kinds: Set<String> = ["swift", "h", "c", "cpp", "md", "sh", "modulemap", "yml", "yaml", "json", "service", ""]
    var paths = try FileManager.default.contentsOfDirectory(atPath: root.path)
    for folder in folders {
        let below = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)
        while let path = below?.nextObject() as? String {
            let name = (path as NSString).lastPathComponent
            // Inputs of fuzz drivers are no text of the repository.
            if name.hasPrefix(".build") || name == "Corpora" { below?.skipDescendants() }
            paths.append("\(folder)/\(path)")
        }
    }
    return paths.sorted().compactMap { path in
        guard kinds.contains((path as NSString).pathExtension) else { return nil }
        // Reading fails for folders and for files that are not text.
        guard let text = try? String(contentsOf: root.appendingPathComponent(path), encoding: .utf8) else { return nil }
        return SourceFile(path, text)
    }
}
