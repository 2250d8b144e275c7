import Foundation
import Hosts

/// A program that downloads, with the options of its manual for retrying and for continuing where it stopped.
struct Client: Sendable {
    let name: String
    let program: String
    /// The arguments before the URL. The file is `out` in the working directory.
    let arguments: [String]

    static func all(products: String) -> [Client] {
        [
            Client(name: "netwatch get", program: "\(products)/netwatch-transfer", arguments: ["get", "-q", "-o", "out"]),
            Client(
                name: "curl", program: "/usr/bin/curl",
                arguments: ["-sf", "--retry", "6", "--retry-all-errors", "-C", "-", "-o", "out"]),
            Client(
                name: "wget", program: "/usr/bin/wget",
                arguments: ["-q", "-c", "-t", "6", "--waitretry=1", "--retry-on-http-error=503", "-O", "out"]),
            Client(
                name: "aria2c", program: "/usr/bin/aria2c",
                arguments: [
                    "-q", "-c", "-x1", "-s1", "--no-conf", "--max-tries=6", "--retry-wait=1", "--auto-file-renaming=false",
                    "--allow-overwrite=true", "-o", "out",
                ]),
            Client(name: "URLSession", program: "\(products)/URLSessionDownload", arguments: ["out"]),
            Client(name: "async-http-client", program: "\(products)/AsyncHTTPClientDownload", arguments: ["out"]),
        ]
    }

    enum Outcome: String, Sendable {
        case right
        /// The program reported success, and the file has the content of no version.
        case spliced = "**spliced**"
        case failed
        case endless = "no end"
    }

    /// The longest time that a program may take, in seconds.
    private static let limit: TimeInterval = 90

    /// Downloads a file that meets a fault. - Returns: the outcome, and the sent bytes as a multiple of the file's size.
    func download(with fault: Fault) throws -> (outcome: Outcome, sentShare: Double) {
        let site = try Site()
        let file = try FaultyFile(fault, at: site)
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("netwatch-faults-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let deadline = Date() + Client.limit
        var process = try start(file.url, at: site, in: folder)
        if [.kill, .cable, .uplink].contains(fault.event) {
            while file.sentBytes < FaultyFile.begun, process.isRunning, Date() < deadline { pause(0.01) }
            // Wait a little, so that a program that writes at once has the sent bytes in its file.
            pause(1.5)
        }
        switch fault.event {
        case .kill:
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
            process = try start(file.url, at: site, in: folder)
        case .cable:
            try site.pullCable()
            pause(15)
            try site.putCableBack()
            file.openGate()
        case .uplink:
            try site.loseUplink()
            pause(5)
            try site.takeOtherUplink()
            file.openGate()
        case .reset, .resetAgainAndAgain, .unwell, .silence: break
        }
        while process.isRunning {
            if Date() > deadline {
                kill(process.processIdentifier, SIGKILL)
                process.waitUntilExit()
                return (.endless, file.sentShare)
            }
            pause(0.01)
        }
        guard process.terminationReason == .exit, process.terminationStatus == 0 else { return (.failed, file.sentShare) }
        let content = try? Data(contentsOf: folder.appendingPathComponent("out"))
        return (file.hasVersion(content) ? .right : .spliced, file.sentShare)
    }

    private func pause(_ seconds: Double) { Thread.sleep(forTimeInterval: seconds) }

    private func start(_ url: String, at site: Site, in folder: URL) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/nsenter")
        process.arguments = ["--net=\(site.client.path)", "--", program] + arguments + [url]
        process.currentDirectoryURL = folder
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }
}
