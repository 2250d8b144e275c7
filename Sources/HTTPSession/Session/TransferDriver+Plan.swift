internal import FoundationEssentials

/// What the engine is asked to do for the present attempt.
extension TransferDriver {
    func plan() -> TransferPlan {
        let (request, origin) = (machine.request, machine.origin)
        var plan =
            machine.isFirstAttempt && machine.attempt.adaptedRequest == nil && machine.upload == nil
            ? job.plan
            : TransferPlan(
                machine.attempt.adaptedRequest ?? request, logins: machine.logins, settings: settings,
                segments: bodyIsEmpty ? [] : segments, isElsewhere: origin != job.origin)
        plan.needsFreshConnection = machine.needsFreshConnection
        plan.asksBeforeConnecting = settings.asksBeforeConnecting(for: request, to: origin)
        plan.watchesWay = settings.watchesWay(to: origin)
        plan.usesProxy = settings.usesProxy(before: origin, isSecure: loop.isUpgraded(origin.host))
        plan.maximumLookupSeconds = loop.maximumLookupSeconds
        if loop.queue.sharesConnections(host), !origin.isLoopback { plan.maximumIdleSeconds = loop.maximumIdleSeconds }
        if machine.kind == .stream {
            plan.avoidsHTTP2 = true
            // While it waits for its reader, what has been decompressed of it has to be kept.
            if plan.decompresses { plan.headerLines.append("Accept-Encoding: identity") }
        }
        if machine.kind == .download {
            (plan.decompresses, plan.bufferSize) = (false, 256 << 10)
            plan.headerLines += machine.downloadFieldLines()
        }
        // Of a response that waits for its reader or its handler, libcurl keeps what one read decompresses to: at most 64 MiB, or it is
        // "out of memory".
        if machine.kind == .stream || (plan.decompresses && task.handlers.response != nil) { plan.bufferSize = 16 << 10 }
        // libcurl looks at the rate when it has read up to a hundred times its buffer: then a second's worth has come.
        if let rate = settings.configuration.maximumReceiveRate {
            plan.bufferSize = Int(max(1_024, min(Int64(plan.bufferSize), rate / 100)))
        }
        return plan
    }
}
