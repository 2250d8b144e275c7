internal import EventLoop
internal import FoundationEssentials
internal import Glibc
internal import Reachability

/// The reader of files of policies and identities.
enum SecurityFile {
    /// The largest file that is read, in bytes. A system's bundle of root certificates has about 220,000.
    static let maximumSize = 16 * 1024 * 1024

    /// Reads a file.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration``, naming the file.
    static func contents(of path: String) throws(HTTPSessionError) -> Data {
        // Through a URL, which expands `~`.
        let descriptor = open(URL(fileURLWithPath: path).path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path, errno) }
        defer { close(descriptor) }
        let bytes: [UInt8]
        do { bytes = try DescriptorContents.read(descriptor, atMost: maximumSize + 1) } catch {
            throw unreadable(path, error.number)
        }
        guard bytes.count <= maximumSize else {
            throw HTTPSessionError(.invalidConfiguration, "\(path) has more than \(maximumSize) bytes")
        }
        return Data(bytes)
    }

    /// The path of a file's URL.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidConfiguration`` for a URL of another scheme.
    static func path(of url: URL) throws(HTTPSessionError) -> String {
        guard url.isFileURL else {
            throw HTTPSessionError(.invalidConfiguration, "\(url.withoutSecrets) is not the URL of a file")
        }
        return url.path
    }

    /// The paths of the files in a directory that have one of the extensions, sorted.
    static func names(in directory: String, extensions: Set<String>) throws(HTTPSessionError) -> [String] {
        do {
            let names = try FileManager.default.contentsOfDirectory(atPath: directory)
            return names.sorted().compactMap { name in
                let url = URL(fileURLWithPath: directory).appendingPathComponent(name)
                return extensions.contains(url.pathExtension.lowercased()) ? url.path : nil
            }
        } catch {
            throw HTTPSessionError(.invalidConfiguration, "cannot read \(directory)", underlying: error)
        }
    }

    private static func unreadable(_ path: String, _ number: Int32) -> HTTPSessionError {
        HTTPSessionError(
            .invalidConfiguration, "cannot read \(path): \(errorText(number))", context: .init(systemError: number))
    }
}
