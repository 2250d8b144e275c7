internal import CLinux
internal import COpenSSL
internal import Glibc

/// The authorities that the environment names instead of the system's (X509_STORE_set_default_paths(3)). `SSL_CERT_FILE` names a
/// file. `SSL_CERT_DIR` names directories, separated by colons, whose files have hashed names (openssl-rehash(1)).
///
/// A name that leads to no certificate is an error: a user who names authorities trusts only these, not the hundred of the
/// system.
struct EnvironmentAuthorities: Hashable, Sendable {
    var file: String?
    var directories: String?

    /// The authorities of this process's environment. A program with raised privileges ignores them (secure_getenv(3)), because
    /// its caller chose the environment.
    static var current: EnvironmentAuthorities {
        func value(_ name: String) -> String? { netwatch_secure_getenv(name).map { String(cString: $0) } }
        return EnvironmentAuthorities(file: value("SSL_CERT_FILE"), directories: value("SSL_CERT_DIR"))
    }

    /// Whether these authorities replace the system's.
    var replacesSystem: Bool { file != nil || directories != nil }

    /// Adds the authorities to an X509_STORE.
    ///
    /// - Throws: ``CertificateError`` that names the variable and the path.
    func load(into store: OpaquePointer) throws(CertificateError) {
        if let file {
            // The file may be a pipe, so it is read only once.
            guard X509_STORE_load_file(store, file) == 1 else {
                throw .noAuthorities(variable: "SSL_CERT_FILE", path: file, systemError: Self.readError(file))
            }
        }
        guard let directories else { return }
        for directory in directories.split(separator: ":", omittingEmptySubsequences: false).map(String.init) {
            let certificates = Self.count(in: directory)
            guard certificates > 0, X509_STORE_load_path(store, directory) == 1 else {
                let number = certificates < 0 ? errno : 0
                throw .noAuthorities(variable: "SSL_CERT_DIR", path: directory, systemError: number)
            }
        }
    }

    /// Returns the errno of reading a file, or 0 if it is readable.
    static func readError(_ path: String) -> Int32 {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        var byte: UInt8 = 0
        return read(descriptor, &byte, 1) < 0 && errno != EAGAIN ? errno : 0
    }

    /// Counts the entries whose name is a certificate's hash. Returns -1 with errno if the directory cannot be read.
    private static func count(in directory: String) -> Int {
        guard let stream = opendir(directory) else { return -1 }
        defer { closedir(stream) }
        var count = 0
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.wholeMatch(of: /[0-9a-f]{8}\.[0-9]+/) != nil { count += 1 }
        }
        return count
    }
}
