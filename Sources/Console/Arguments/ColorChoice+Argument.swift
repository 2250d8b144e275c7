import ArgumentParser

extension TextStyle.ColorChoice: ExpressibleByArgument {}
