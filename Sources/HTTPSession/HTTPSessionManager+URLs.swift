public import FoundationEssentials

/// Methods that make a task for a GET request of a URL, and start it.
extension HTTPSessionManager {
    /// Makes a task that requests a URL and keeps the response in memory; see ``dataTask(for:handlers:startsImmediately:)``.
    public func dataTask(for url: URL) -> TransferTask { dataTask(for: TransferRequest(url: url)) }

    /// Makes a task that requests a URL and writes the response's body to a file that does not exist yet. A ``DownloadDestination`` has other
    /// rules.
    public func downloadTask(for url: URL, to file: URL) -> TransferTask {
        downloadTask(for: TransferRequest(url: url), to: DownloadDestination(file))
    }

    /// Makes a task that requests a URL and writes the response's body to a file; see
    /// ``downloadTask(for:to:handlers:startsImmediately:)-(_,DownloadDestination,_,_)``.
    public func downloadTask(for url: URL, to destination: DownloadDestination) -> TransferTask {
        downloadTask(for: TransferRequest(url: url), to: destination)
    }

    /// Makes a task that requests a URL, and whose response is read in chunks; see ``streamTask(for:handlers:startsImmediately:)``.
    public func streamTask(for url: URL) -> TransferTask { streamTask(for: TransferRequest(url: url)) }
}
