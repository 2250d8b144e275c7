import Foundation

/// Runs the same faults for every downloader, and prints the results as the table of docs/compared.md. The argument is the folder
/// of the built products.
@main struct FaultComparison {
    static func main() {
        guard CommandLine.arguments.count == 2 else {
            FileHandle.standardError.write(Data("FaultComparison PRODUCTS: run it as scripts/bench faults\n".utf8))
            exit(64)
        }
        let clients = Client.all(products: CommandLine.arguments[1])
        for client in clients where !FileManager.default.isExecutableFile(atPath: client.program) {
            FileHandle.standardError.write(Data("faults: no \(client.program)\n".utf8))
            exit(69)
        }
        print("| what happens | \(clients.map(\.name).joined(separator: " | ")) |")
        print("|---|\(String(repeating: "---|", count: clients.count))")
        for fault in Fault.all {
            let cells = Shared([String](repeating: "", count: clients.count))
            let all = DispatchGroup()
            for (place, client) in clients.enumerated() {
                all.enter()
                // Each client has its own thread, because a child process that holds a host ends with the thread that started it.
                Thread.detachNewThread {
                    let cell = cell(client, fault)
                    cells.withLock { $0[place] = cell }
                    all.leave()
                }
            }
            all.wait()
            print("| \(fault.name) | \(cells.withLock { $0 }.joined(separator: " | ")) |")
            fflush(nil)
        }
    }

    private static func cell(_ client: Client, _ fault: Fault) -> String {
        do {
            let (outcome, share) = try client.download(with: fault)
            return "\(outcome.rawValue) \(String(format: "%.2f", share))"
        } catch {
            return "not run: \(error)"
        }
    }
}
