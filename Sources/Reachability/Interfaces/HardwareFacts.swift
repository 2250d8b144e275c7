/// What is known of a device that has no `IFLA_INFO_KIND`: hardware, and the few software devices that never got a kind.
struct HardwareFacts {
    let link: Link
    let evidence: InterfaceEvidence

    /// `ARPHRD_*` of linux/if_arp.h, as far as they decide.
    private enum HardwareType {
        static let ethernet: UInt16 = 1
        static let ppp: UInt16 = 512
        /// Raw IP of a modem; 530 is what Android's kernels call it.
        static let rawIP: Set<UInt16> = [519, 530]
        /// IPIP, IP6IP6, SIT, GRE, GRE over IPv6.
        static let tunnels: Set<UInt16> = [768, 769, 776, 778, 823]
        static let loopback: UInt16 = 772
        /// Taps of netlink and vsock traffic.
        static let monitors: Set<UInt16> = [824, 826]
    }

    /// Drivers that set `FLAG_WWAN` or speak a modem's protocol, whether or not DEVTYPE is known.
    private static let modemDrivers: Set<String> = [
        "qmi_wwan", "cdc_mbim", "huawei_cdc_ncm", "sierra_net", "hso", "kalmia", "wwan", "iosm", "mtk_t7xx", "mhi_net",
    ]

    /// Drivers of the standard classes that phones offer when they share their connection.
    private static let tetherDrivers: Set<String> = [
        "rndis_host", "ipheth", "cdc_ether", "cdc_ncm", "cdc_eem", "cdc_subset",
    ]

    private var bus: String? { evidence.bus ?? link.parentBus }
    private func answered(_ source: String) -> Bool { evidence.sources.contains(source) }

    var classification: Classification {
        if link.flags.contains(.loopback) || link.hardwareType == HardwareType.loopback {
            return Classification(type: .loopback, isVirtual: true, evidence: ["loopback device"])
        }
        return byDeviceType ?? byDriver ?? byHardwareType
    }

    /// What the wireless stack and sysfs' DEVTYPE say.
    var byDeviceType: Classification? {
        let says = evidence.deviceType.map { ["DEVTYPE \($0) (sysfs)"] } ?? []
        func expensive(_ type: InterfaceType) -> Classification {
            Classification(type: type, isVirtual: false, isExpensive: true, evidence: says + device)
        }
        if evidence.isWireless || evidence.deviceType == "wlan" {
            let stack = !evidence.isWireless ? [] : [answered("nl80211") ? "listed by nl80211" : "phy80211 (sysfs)"]
            return Classification(type: .wifi, isVirtual: false, evidence: says + stack + device)
        }
        switch evidence.deviceType {
        case "wwan": return expensive(.cellular)
        case "bluetooth": return expensive(.bluetooth)
        case "gadget": return Classification(type: .usb, isVirtual: false, evidence: says + device)
        case "l2tpeth": return Classification(type: .tunnel, isVirtual: true, evidence: says)
        case "dsa": return Classification(type: .wired, isVirtual: false, evidence: says + device)
        case "ppp": return InterfaceClassifier.pointToPoint(evidence, says: "DEVTYPE ppp (sysfs)")
        default: return nil
        }
    }

    /// What the driver and the bus say by themselves.
    private var byDriver: Classification? {
        if let driver = evidence.driver {
            if Self.modemDrivers.contains(driver) {
                return Classification(type: .cellular, isVirtual: false, isExpensive: true, evidence: device)
            }
            if Self.tetherDrivers.contains(driver) {
                return Classification(
                    type: .usb, isVirtual: false, isExpensive: true, evidence: device + ["likely a phone's tether"])
            }
            if driver == "g_ether" { return Classification(type: .usb, isVirtual: false, evidence: device) }
            if driver == "netdevsim" { return Classification(type: .virtual, isVirtual: true, evidence: device) }
        }
        switch bus {
        case "gadget": return Classification(type: .usb, isVirtual: false, evidence: device)
        case "netdevsim": return Classification(type: .virtual, isVirtual: true, evidence: device)
        case "wwan": return Classification(type: .cellular, isVirtual: false, isExpensive: true, evidence: device)
        case "bluetooth": return Classification(type: .bluetooth, isVirtual: false, isExpensive: true, evidence: device)
        default: return nil
        }
    }

    private var byHardwareType: Classification {
        let says = "ARPHRD \(link.hardwareType)"
        let type = link.hardwareType
        if type == HardwareType.ethernet { return ethernet }
        if type == HardwareType.ppp { return InterfaceClassifier.pointToPoint(evidence, says: says) }
        if HardwareType.rawIP.contains(type) {
            return Classification(type: .cellular, isVirtual: false, isExpensive: true, evidence: ["\(says) (raw IP)"] + device)
        }
        if HardwareType.tunnels.contains(type) { return Classification(type: .tunnel, isVirtual: true, evidence: [says]) }
        if HardwareType.monitors.contains(type) { return Classification(type: .virtual, isVirtual: true, evidence: [says]) }
        return Classification(type: .other, isVirtual: hasNoDevice, evidence: [says] + device)
    }

    /// No kind, no DEVTYPE, Ethernet: a network card, or a module of someone's own (vboxnet, l2tpeth in another namespace).
    private var ethernet: Classification {
        if hasNoDevice {
            let readers = evidence.sources.joined(separator: ", ")
            return Classification(type: .virtual, isVirtual: true, evidence: ["ARPHRD 1", "no device behind it (\(readers))"])
        }
        let doubt = answered("sysfs") || answered("nl80211") ? [] : ["Wi-Fi not ruled out: neither sysfs nor nl80211 answered"]
        return Classification(type: .wired, isVirtual: false, evidence: ["ARPHRD 1 (Ethernet)"] + device + doubt)
    }

    /// Whether somebody who would know says that there is no device. Linux 5.14 and newer name the parent's bus in the link
    /// message, but its absence alone proves nothing on older ones.
    private var hasNoDevice: Bool {
        guard bus == nil else { return false }
        return answered("sysfs") || (answered("ethtool") && evidence.driver == nil)
    }

    private var device: [String] {
        switch (evidence.driver, bus) {
        case (let driver?, let bus?): ["driver \(driver), bus \(bus)"]
        case (let driver?, nil): ["driver \(driver)"]
        case (nil, let bus?): ["bus \(bus)"]
        case (nil, nil): []
        }
    }
}
