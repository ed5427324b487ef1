CREATE TABLE parts (pid INT PRIMARY KEY, name STRING, price DECIMAL(8, 2) NOT NULL);
CREATE TABLE devices_parts (
  did INT,
  pid INT REFERENCES parts (pid),
  PRIMARY KEY (did, pid)
);
