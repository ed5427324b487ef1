SELECT dp.did, sum(p.price) AS cost, count(*) AS parts
FROM devices_parts dp JOIN parts p ON dp.pid = p.pid
GROUP BY dp.did
