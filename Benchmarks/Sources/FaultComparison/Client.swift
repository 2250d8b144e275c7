import Foundation

/// A program that downloads, told to try again and to go on where it stopped, as its manual has it.
struct Client {
    let name: String
    let program: String
    /// Before the URL; the file is `out` in the working directory.
    let arguments: [String]

    static func all(products: String) -> [Client] {
        [
            Client(name: "netwatch get", program: "\(products)/netwatch-transfer", arguments: ["get", "-q", "-o", "out"]),
            Client(
                name: "curl", program: "/usr/bin/curl",
                arguments: ["-sf", "--retry", "6", "--retry-all-errors", "-C", "-", "-o", "out"]),
            Client(name: "wget", program: "/usr/bin/wget", arguments: ["-q", "-c", "-t", "6", "--waitretry=1", "-O", "out"]),
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

    enum Outcome: String {
        case right
        /// It said that all is well, and the file is of no version.
        case spliced = "**spliced**"
        case failed
        case endless = "no end"
    }

    /// How long a program may take.
    private static let limit: TimeInterval = 60

    func meets(_ fault: Fault) throws -> (outcome: Outcome, sentShare: Double) {
        let file = try FaultyFile(fault)
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("netwatch-faults-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        if fault.kills {
            let process = try start(file.url, in: folder)
            let deadline = Date() + Client.limit
            // A little later, so that what was sent is in the file of whoever writes at once.
            while file.sentBytes < FaultyFile.begun, process.isRunning, Date() < deadline { usleep(10_000) }
            usleep(1_500_000)
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
        let process = try start(file.url, in: folder)
        let deadline = Date() + Client.limit
        while process.isRunning {
            if Date() > deadline {
                kill(process.processIdentifier, SIGKILL)
                process.waitUntilExit()
                return (.endless, file.sentShare)
            }
            usleep(10_000)
        }
        guard process.terminationReason == .exit, process.terminationStatus == 0 else { return (.failed, file.sentShare) }
        let content = try? Data(contentsOf: folder.appendingPathComponent("out"))
        let isRight = (0...1).contains { content == FaultyFile.content(ofVersion: $0) }
        return (isRight ? .right : .spliced, file.sentShare)
    }

    private func start(_ url: String, in folder: URL) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments + [url]
        process.currentDirectoryURL = folder
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }
}
