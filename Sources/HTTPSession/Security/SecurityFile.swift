internal import Foundation

/// Reads the files that policies and identities are made of.
enum SecurityFile {
    /// The largest file that is read, in bytes. A system's bundle of roots has about 220,000.
    static let maximumSize = 16 * 1024 * 1024

    /// The contents, or an `invalidConfiguration` error that names the file.
    static func contents(of path: String) throws(HTTPSessionError) -> Data {
        do {
            let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
            defer { try? handle.close() }
            let data = try handle.read(upToCount: maximumSize + 1) ?? Data()
            guard data.count <= maximumSize else {
                throw HTTPSessionError(.invalidConfiguration, "\(path) has more than \(maximumSize) bytes")
            }
            return data
        } catch let error as HTTPSessionError {
            throw error
        } catch {
            throw unreadable(path, error)
        }
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
            throw unreadable(directory, error)
        }
    }

    private static func unreadable(_ path: String, _ error: any Error) -> HTTPSessionError {
        HTTPSessionError(.invalidConfiguration, "cannot read \(path)", underlying: error)
    }
}
