print("netwatch")
