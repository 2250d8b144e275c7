internal import CLinux
internal import COpenSSL
internal import Glibc

/// The authorities that the environment names in place of the system's: those of the file `SSL_CERT_FILE`, and those of the directories
/// `SSL_CERT_DIR`, separated by colons, whose files have hashed names (openssl-rehash(1), X509_STORE_set_default_paths(3)).
///
/// A name that leads to no certificate is an error: whoever names authorities trusts these, and not the system's hundred.
struct EnvironmentAuthorities: Hashable, Sendable {
    var file: String?
    var directories: String?

    /// What the environment names. A program with raised privileges ignores it (secure_getenv(3)): its user chose the environment.
    static var current: EnvironmentAuthorities {
        func value(_ name: String) -> String? { netwatch_secure_getenv(name).map { String(cString: $0) } }
        return EnvironmentAuthorities(file: value("SSL_CERT_FILE"), directories: value("SSL_CERT_DIR"))
    }

    /// Whether the system's authorities are replaced.
    var replacesSystem: Bool { file != nil || directories != nil }

    /// Adds the named authorities to an X509_STORE, or throws an error that names the variable and the path.
    func load(into store: OpaquePointer) throws(CertificateError) {
        if let file {
            // It may be a pipe: it is read once.
            guard X509_STORE_load_file(store, file) == 1 else {
                throw .noAuthorities(variable: "SSL_CERT_FILE", path: file, systemError: Self.objection(file))
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

    /// Why a file has no certificate: an errno, or 0 if it can be read.
    private static func objection(_ path: String) -> Int32 {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        var byte: UInt8 = 0
        return read(descriptor, &byte, 1) < 0 && errno != EAGAIN ? errno : 0
    }

    /// The number of entries with the name of a certificate's hash, or -1 with errno.
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
