internal import FoundationEssentials

/// The plan of the present attempt.
extension TaskDriver {
    func plan() -> TransferPlan {
        let (request, origin) = (machine.request, machine.origin)
        var plan =
            machine.isFirstAttempt && machine.attempt.adaptedRequest == nil && machine.upload == nil
            ? job.plan
            : TransferPlan(
                machine.attempt.adaptedRequest ?? request, logins: machine.logins, settings: settings,
                segments: bodyIsEmpty ? [] : segments,
                way: origin == job.origin ? nil : .init(from: job.origin, to: origin, hasDowngraded: machine.hasDowngraded))
        if machine.omitsExpectation { plan.omitExpectation() }
        plan.needsFreshConnection = machine.needsFreshConnection
        plan.asksBeforeConnecting = settings.asksBeforeConnecting(for: request, to: origin)
        plan.watchesRoute = settings.watchesRoute(to: origin)
        plan.expectsUpgrade = loop.isUpgraded(origin.host)
        plan.proxy = settings.proxy(before: origin, isSecure: plan.expectsUpgrade)
        answerDigests(in: &plan)
        plan.maximumLookupSeconds = loop.maximumLookupSeconds
        if loop.queue.sharesConnections(host), !origin.isLoopback { plan.maximumIdleSeconds = loop.maximumIdleSeconds }
        if machine.kind == .stream {
            plan.avoidsHTTP2 = true
            // Uncompressed, so that each chunk arrives when it is sent: a compressor collects bytes first.
            if plan.decompresses { plan.requestIdentity() }
            plan.requestsCompression = false
        }
        if machine.kind == .download {
            let lines = machine.downloadFieldLines()
            plan.replaceFields(by: lines)
            if lines.isEmpty {
                if plan.decompresses { plan.requestIdentity() }
            } else {
                // Also if the session has an Accept-Encoding of its own, which is replaced.
                plan.decompresses = settings.configuration.decompressesResponses
            }
            // A server may compress nevertheless: what it sends is decompressed, and does not continue. But Content-Encoding is often the coding of
            // the file itself, as its name says.
            if namesCompressedFile(request.url) { plan.decompresses = false }
            plan.requestsCompression = false
            plan.bufferSize = machine.readsSmallPieces ? 16 << 10 : 256 << 10
        }
        // While a response waits for its reader or handler, libcurl keeps the bytes to which one read decompresses, if the transfer has a coding
        // (Transfer-Encoding). Beyond 64 MiB it fails with "out of memory", so a read is kept small.
        if machine.kind == .stream || (plan.decompresses && machine.rules.handlers.contains(.response)) {
            plan.bufferSize = 16 << 10
        }
        // libcurl checks the rate after it has read up to a hundred buffers, so a hundred buffers hold the bytes of one second.
        if let rate = settings.configuration.maximumReceiveRate {
            plan.bufferSize = Int(max(1_024, min(Int64(plan.bufferSize), rate / 100)))
        }
        return plan
    }

    /// Whether the last component of the URL's path, or the name of the destination, is that of a compressed file.
    private func namesCompressedFile(_ url: URL) -> Bool {
        let suffixes = ["gz", "tgz", "svgz", "zst", "tzst", "br", "zz"]
        var names = [url.lastPathComponent]
        if case .file(let destination) = machine.rules.destination { names.append(destination.file.lastPathComponent) }
        return names.contains { name in
            guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return false }
            return suffixes.contains(name[name.index(after: dot)...].lowercased())
        }
    }
}
