import FoundationEssentials
import Glibc
import Reachability

/// A file of the configuration, read with care: it may be a FIFO, a device, a loop of symbolic links, or endless.
enum ConfigurationFile {
    /// The maximum size of a file of the configuration.
    static let sizeLimit = 1 << 20

    /// Reads a file of text.
    ///
    /// - Throws: ``ConfigurationProblem`` if the file is missing, is not a regular file, is too large or is not UTF-8.
    static func text(_ path: String) throws(ConfigurationProblem) -> String {
        let bytes = try bytes(path)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw ConfigurationProblem(.file(path, line: lineOfInvalidByte(bytes), column: 1), "the line is not UTF-8")
        }
        // libyaml takes a byte order mark for content if the encoding is given.
        return text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
    }

    /// Reads a regular file of at most ``sizeLimit`` bytes.
    static func bytes(_ path: String) throws(ConfigurationProblem) -> [UInt8] {
        func problem(_ reason: String) -> ConfigurationProblem { ConfigurationProblem(.path(path), reason) }
        // Opening a FIFO must not wait for its writer, and a terminal must not become the controlling one.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else {
            throw problem(
                errno == ELOOP ? "its symbolic links form a loop, or are too many" : "cannot be read: \(errorText(errno))")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw problem("cannot be read: \(errorText(errno))") }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw problem(status.st_mode & S_IFMT == S_IFDIR ? "is a directory" : "is not a regular file")
        }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= sizeLimit {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw problem("cannot be read: \(errorText(errno))") }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
        }
        throw problem("is larger than \(sizeLimit >> 20) MiB")
    }

    /// The number of the first line that is not UTF-8.
    private static func lineOfInvalidByte(_ bytes: [UInt8]) -> Int {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return 1 + (lines.firstIndex { String(validating: $0, as: UTF8.self) == nil } ?? 0)
    }

    /// The names in a folder, in the order of their bytes; `nil` if there is no folder.
    static func names(in folder: String) throws(ConfigurationProblem) -> [String]? {
        guard let directory = opendir(folder) else {
            if errno == ENOENT { return nil }
            throw ConfigurationProblem(.path(folder), "cannot be read: \(errorText(errno))")
        }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
}
