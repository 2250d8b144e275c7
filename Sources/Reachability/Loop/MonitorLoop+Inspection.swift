extension MonitorLoop {
    /// Asks the kernel for a route, and for the neighbor to which it leads.
    func inspect(_ query: RouteQuery) -> RouteInspection {
        var inspection = RouteInspection(query)
        let bytes = kernel.ask([query][...]).first ?? []
        inspection.route = RouteAnswer(NetlinkDecoder.decode(bytes), to: query) ?? .unanswered
        if let key = inspection.nextHop { inspection.neighbor = NeighborAnswer(NetlinkDecoder.decode(kernel.ask(key))) }
        return inspection
    }
}
