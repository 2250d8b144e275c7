package import ArgumentParser
package import Certificates
package import FoundationEssentials
package import Reachability
import Glibc

/// The trusted authorities and the client certificate, for commands that send requests or probes.
package struct TrustOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Trust the authorities in this file (PEM) instead of the system's.", valueName: "file"))
    package var cafile: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The client certificate with its chain (PEM), for servers that require one.", valueName: "file"))
    package var cert: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The private key of --cert (PEM); default: in the same file.", valueName: "file"))
    package var key: String?

    package init() {}

    /// Trusts the authorities in probes, if there are any. Returns the contents of their file, which is read once: it may be a pipe.
    ///
    /// - Throws: ``Failure`` with code 65 for a file whose contents are not valid, 66 for one that cannot be read, and 77 for one that this user may not
    ///   read.
    @discardableResult
    package func trust(in probes: inout TLSProbeSettings) throws(Failure) -> Data? {
        guard let cafile else { return nil }
        do throws(TLSProbeSettings.FileError) {
            let data = try TLSProbeSettings.contents(of: cafile)
            try probes.trustAuthorities(data, named: cafile)
            return data
        } catch { throw Failure("--cafile", error) }
    }

    /// Reads the client certificate, and its key from the same file or another one. Each is read once: it may be a pipe.
    ///
    /// - Throws: ``Failure`` with code 64 for a key alone, and otherwise as ``trust(in:)``.
    package func identity() throws(Failure) -> ClientCertificate? {
        guard cert != nil || key == nil else { throw .usage("--key \(key ?? "")", "it needs --cert") }
        guard let cert else { return nil }
        func contents(_ option: String, _ path: String) throws(Failure) -> Data {
            do { return try TLSProbeSettings.contents(of: path) } catch { throw Failure(option, error) }
        }
        let certificate = try contents("--cert", cert)
        let privateKey = if let key { try contents("--key", key) } else { certificate }
        do {
            return try TLSProbeSettings.identity(
                certificate, named: "--cert \(cert)", key: privateKey, named: key.map { "--key \($0)" })
        } catch {
            let needsKey = error.description.hasSuffix("name the file of the key")
            throw Failure(ExitCode.badData, error.description + (needsKey ? " with --key" : ""))
        }
    }
}

extension Failure {
    /// Creates the failure of a file with certificates or lists that an option names: code 65, 66, or 77 if this user may not read it.
    package init(_ option: String, _ error: TLSProbeSettings.FileError) {
        let code: Int32 =
            switch error.systemError {
            case nil: ExitCode.badData
            case EACCES, EPERM: ExitCode.notPermitted
            default: ExitCode.noInput
            }
        self.init(code, "\(option) \(error)")
    }
}
