import CLinux

extension LabHost {
    /// Adds an interface of any kind that `ip link` knows: `host.add("mv0", "link v0", type: "macvlan mode bridge")`. The options
    /// precede `type`, and the type includes the options of the kind.
    public func add(_ name: String, _ options: String = "", type: String) throws {
        try ip("link add name \(name) index \(Lab.nextIndex()) \(options) type \(type)")
    }

    /// Adds a bridge with interfaces of this host as its ports. The bridge is down.
    public func addBridge(_ name: String, ports: [String] = []) throws {
        try add(name, type: "bridge")
        for port in ports { try ip("link set \(port) master \(name)") }
    }

    /// Adds a macvlan over an interface of this host. The macvlan is down.
    public func addMacvlan(_ name: String, over lower: String) throws {
        try add(name, "link \(lower)", type: "macvlan mode bridge")
    }

    /// Adds a tun or tap device that remains although no process holds it, and therefore has no carrier. The device is down.
    public func addPersistentTun(_ name: String, _ layer: TunDevice.Layer = .ip) throws {
        _ = try TunDevice(name, layer, type: nil, persistent: true, on: self)
    }

    /// Adds a tun or tap device that the returned object holds open. The device is down. `type` is the ARPHRD type that the
    /// kernel reports (TUNSETLINK); with nil the kernel chooses it.
    public func openTun(_ name: String, _ layer: TunDevice.Layer = .ip, type: UInt16? = nil) throws -> TunDevice {
        try TunDevice(name, layer, type: type, persistent: false, on: self)
    }
}

/// A tun or tap device that is held open, as a VPN does. It is removed with this object.
public final class TunDevice: Sendable {
    /// The kind of packets that the device carries.
    public enum Layer: Sendable {
        /// IP packets: tun.
        case ip
        /// Ethernet frames: tap.
        case ethernet
    }

    /// The name of the interface.
    public let name: String
    let descriptor: Descriptor

    init(_ name: String, _ layer: Layer, type: UInt16?, persistent: Bool, on host: LabHost) throws {
        self.name = name
        let flags = (layer == .ip ? IFF_TUN : IFF_TAP) | IFF_NO_PI
        let index = Lab.nextIndex()
        // The device belongs to the namespace of the thread that opens /dev/net/tun.
        descriptor = try host.perform {
            let result = netwatch_tun_open(name, Int32(flags), index, type.map(Int32.init) ?? -1, persistent ? 1 : 0)
            guard result >= 0 else { throw LabError("/dev/net/tun \(name)", errno: -result) }
            return try Descriptor(result, "/dev/net/tun")
        }
    }

    /// Removes or restores the carrier (TUNSETCARRIER).
    public func setCarrier(_ carrier: Bool) throws {
        let code = netwatch_tun_carrier(descriptor.number, carrier ? 1 : 0)
        guard code == 0 else { throw LabError("TUNSETCARRIER \(name)", errno: code) }
    }
}
